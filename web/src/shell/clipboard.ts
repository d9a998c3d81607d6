/**
 * Browsers give no clipboard to a page that came over plain HTTP from another machine. Text that is copied then goes by
 * way of a field that nobody sees.
 */
if (!('clipboard' in navigator))
  Object.defineProperty(navigator, 'clipboard', {
    value: {
      writeText: (text: string): Promise<void> =>
        copyByField(text) ? Promise.resolve() : Promise.reject(new Error('The browser does not let a page copy')),
    },
  });

function copyByField(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.style.position = 'fixed';
  field.style.opacity = '0';
  // In the dialog, where there is one: outside of it nothing can have the focus.
  (before?.closest('[role="dialog"]') ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}
