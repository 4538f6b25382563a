"use strict";
{
  const maps = [...document.querySelectorAll(".map")];
  const shown = document.getElementById("shown"), find = document.getElementById("find");
  const views = maps.map((map) => {
    const points = [...map.querySelectorAll(".point")];
    const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", 16);
    const places = points.map((point) => point.getAttribute("d").match(/[\d.]+/g).map(Number));
    return { svg: map.firstElementChild, points, places, ring };
  });
  const texts = views[0].points.map((point) => {
    const [detail, ...lines] = point.textContent.split("\n");
    return { detail, text: lines.join("\n"), group: point.dataset.group };
  });
  // The page shows the texts itself, and the browser need not show them again.
  for (const { points } of views) for (const point of points) point.replaceChildren();
  let current = -1;

  function light(chosen) {
    for (const { svg, points } of views) {
      points.forEach((point, number) => point.classList.toggle("lit", chosen(number)));
      const groups = new Set(texts.filter((_, number) => chosen(number)).map(({ group }) => group));
      for (const line of svg.querySelectorAll(".link")) line.classList.toggle("lit", groups.has(line.dataset.group));
    }
  }

  function show(number) {
    if (number === current || number < 0) return;
    current = number;
    const { detail, text, group } = texts[number];
    for (const { svg, places, ring } of views) {
      ring.setAttribute("cx", places[number][0]);
      ring.setAttribute("cy", places[number][1]);
      svg.append(ring);
    }
    if (!find.value) light((other) => group !== "-1" && texts[other].group === group);
    const [name, line] = [document.createElement("strong"), document.createElement("span")];
    [name.textContent, line.textContent] = [text, detail];
    shown.replaceChildren(name, line);
  }

  function nearest({ svg, places }, event) {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    let best = -1, least = Infinity;
    places.forEach(([px, py], number) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [number, distance];
    });
    return best;
  }

  // The nearest text within a quarter turn to either side of the direction; one that is aside counts as further.
  function next({ places }, [dx, dy]) {
    if (current < 0) return 0;
    const [x, y] = places[current];
    let best = current, least = Infinity;
    places.forEach(([px, py], number) => {
      const along = (px - x) * dx + (py - y) * dy, across = Math.abs((px - x) * dy - (py - y) * dx);
      if (along > 0 && along + 2 * across < least) [best, least] = [number, along + 2 * across];
    });
    return best;
  }

  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const steps = { PageDown: 1, PageUp: -1 };
  maps.forEach((map, place) => {
    const view = views[place];
    for (const kind of ["pointermove", "pointerdown"]) {
      map.addEventListener(kind, (event) => show(nearest(view, event)));
    }
    map.addEventListener("keydown", (event) => {
      if (event.key in directions) show(next(view, directions[event.key]));
      else if (event.key in steps) show((Math.max(current, 0) + steps[event.key] + texts.length) % texts.length);
      else return;
      event.preventDefault();
    });
  });

  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    const has = texts.map(({ text }) => wanted !== "" && text.toLowerCase().includes(wanted));
    for (const { svg } of views) svg.classList.toggle("searching", wanted !== "");
    light((number) => has[number]);
    const count = has.filter(Boolean).length;
    shown.textContent = wanted ? `${count} of ${texts.length} texts have it` : "";
    current = -1;
    if (count === 1) show(has.indexOf(true));
  });
}
