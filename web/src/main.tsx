import { MantineProvider } from '@mantine/core';
import '@mantine/core/styles.css';
import { Notifications } from '@mantine/notifications';
import '@mantine/notifications/styles.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { IconContext } from 'react-icons';
import { queries } from './api/queries.ts';
import './global.css';
import './i18n/i18n.ts';
import { router } from './routes.tsx';
import './shell/clipboard.ts';
import { colorSchemes, cssVariables, useTheme } from './shell/theme.ts';

/** Style elements that components write need the nonce of the page's policy. */
const nonce = document.querySelector<HTMLElement>('[nonce]')?.nonce ?? '';
// Of the library that locks the page behind a dialog.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;

/** Of icons that say no size: as large as an alert shows them. */
const iconDefaults = { size: '24' };

function Console() {
  return (
    <MantineProvider
      theme={useTheme()}
      cssVariablesResolver={cssVariables}
      colorSchemeManager={colorSchemes}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <IconContext.Provider value={iconDefaults}>
        <QueryClientProvider client={queries}>
          <Notifications position="bottom-right" />
          <RouterProvider router={router} />
        </QueryClientProvider>
      </IconContext.Provider>
    </MantineProvider>
  );
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Console />
  </StrictMode>,
);
