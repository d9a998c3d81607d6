import { vi } from 'vitest';

/**
 * In place of the page that specs lack. One for all files of them: a module that listens to it is loaded once for all
 * (`isolate: false`).
 */
export const page = new EventTarget();

export function stubPage(): void {
  vi.stubGlobal('document', { baseURI: 'http://heraut.example/console/' });
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
}
