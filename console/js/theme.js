// Applies the stored color theme before the first paint. Not a module: modules run after it.
(() => {
  const chosen = localStorage.getItem("corbie.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
