// Search finds a flag as it is typed: lunr would read the hyphens of "--keep" as "without".
document.addEventListener("input", ({ target }) => {
  if (target.matches(".md-search__input")) target.value = target.value.replace(/(^|\s)-+/g, "$1");
}, true);
