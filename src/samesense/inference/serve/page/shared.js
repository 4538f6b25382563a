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
  const reply = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const answer = await reply.json();
  if (answer.error) throw new Error(answer.error.message);
  return answer;
}
