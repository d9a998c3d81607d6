import {
  Badge,
  createTheme,
  Drawer,
  localStorageColorSchemeManager,
  Modal,
  Notification,
  type CSSVariablesResolver,
  type MantineColorsTuple,
  type MantineThemeOverride,
} from '@mantine/core';
import { useMemo } from 'react';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'theme',
  { closeDialog: 'Close this dialog', closeNotice: 'Close this notice' },
  { closeDialog: 'Sluit dit venster', closeNotice: 'Sluit deze melding' },
);

const heraut: MantineColorsTuple = [
  '#e6f6f8',
  '#d2e9ec',
  '#a5d3d9',
  '#75bcc5',
  '#4fa9b4',
  '#379daa',
  '#2897a5',
  '#0b6b78',
  '#0a5f6b',
  '#064f5a',
];

const theme = createTheme({
  primaryColor: 'heraut',
  colors: { heraut },
  primaryShade: { light: 7, dark: 8 },
  autoContrast: true,
  luminanceThreshold: 0.18,
  defaultRadius: 'md',
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'Cascadia Code', 'DejaVu Sans Mono', Menlo, Consolas, monospace",
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.15rem' }, h3: { fontSize: '1rem' } },
  },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    // Capitals are harder to read, and a state is a word.
    Badge: Badge.extend({ defaultProps: { tt: 'none', fw: 500 } }),
  },
});

/** With the names of buttons that are only a cross, in the chosen language. */
export function useTheme(): MantineThemeOverride {
  const t = useTexts();
  return useMemo(() => {
    const closing = { closeButtonProps: { 'aria-label': t('closeDialog') } };
    return {
      ...theme,
      components: {
        ...theme.components,
        Modal: Modal.extend({ defaultProps: closing }),
        Drawer: Drawer.extend({ defaultProps: closing }),
        Notification: Notification.extend({ defaultProps: { closeButtonProps: { 'aria-label': t('closeNotice') } } }),
      },
    };
  }, [t]);
}

const tinted = ['red', 'orange', 'yellow', 'green', 'blue', 'gray', 'grape', 'heraut'];

/**
 * Contrast in both schemes, where the library's defaults have less: 4.5 of texts, also of those that stand in an empty
 * field (WCAG 2.2, 1.4.3), and 3 of the edge of a field (1.4.11), which global.css draws.
 */
export const cssVariables: CSSVariablesResolver = (given) => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': given.colors.gray[7],
    '--mantine-color-placeholder': '#646c74',
    '--edge-of-field': given.colors.gray[6],
    '--mantine-color-error': given.colors.red[9],
    '--mantine-color-anchor': heraut[8],
    ...Object.fromEntries(
      tinted.map((name) => [
        `--mantine-color-${name}-light-color`,
        `color-mix(in srgb, ${(given.colors[name] ?? heraut)[9]}, black 35%)`,
      ]),
    ),
  },
  dark: {
    '--mantine-color-dimmed': '#c1c2c5',
    '--mantine-color-placeholder': '#a6a7ab',
    '--edge-of-field': '#8c8c8c',
    '--mantine-color-error': given.colors.red[4],
    '--mantine-color-anchor': heraut[3],
    ...Object.fromEntries(
      tinted.map((name) => [`--mantine-color-${name}-light-color`, (given.colors[name] ?? heraut)[2]]),
    ),
  },
});

/** The key is that of public/assets/color-scheme.js. */
export const colorSchemes = localStorageColorSchemeManager({ key: 'heraut-color-scheme' });
