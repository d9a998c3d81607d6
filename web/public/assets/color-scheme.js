// Before the first paint, so that a dark console never flashes white. A file of its own: the policy of the page allows no script in it.
{
  let stored;
  try {
    stored = localStorage.getItem('heraut-color-scheme');
  } catch {
    stored = null; // storage is switched off: the system decides
  }
  const isDark = stored === 'dark' || (stored !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light');
}
