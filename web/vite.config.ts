import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  // The page is served at any depth, behind any prefix: its <base> says where the files are.
  base: './',
  plugins: [react()],
  html: { cspNonce: '__NONCE__' },
  build: {
    target: 'es2022',
    // The policy of the page allows neither script in it nor `data:`.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
});
