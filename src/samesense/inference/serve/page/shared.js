const $ = (id) => document.getElementById(id);

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

async function ask(path, body) {
  const headers = { "Content-Type": "application/json" };
  if ($("key")?.value) headers.Authorization = `Bearer ${$("key").value}`;
  const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
  const reply = await fetch(path, request).catch(() => {
    throw new Error("The server does not answer. Start its command again, and reload this page.");
  });
  const answer = await reply.json();
  if (answer.error) throw new Error(answer.error.message);
  return answer;
}
