// Sets the colours the reader chose before anything is drawn. Not a module: modules run after the first paint.
(() => {
  const chosen = localStorage.getItem("corbie.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
