/**
 * A page that asks for news by itself does not keep a session alive; somebody who does something does, for this long
 * after it.
 */
const countsForMs = 60_000;

let lastAt = performance.now();

// Programs that read the screen, and those that fill in forms, cause neither a pointer's event nor a key's.
for (const kind of ['pointerdown', 'keydown', 'wheel', 'touchmove', 'click', 'input'])
  addEventListener(kind, () => (lastAt = performance.now()), { capture: true, passive: true });

/** Whether the user did something lately. */
export const isActive = (): boolean => performance.now() - lastAt < countsForMs;
