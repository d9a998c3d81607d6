import { defineConfig } from 'oxfmt';

export default defineConfig({
  singleQuote: true,
  printWidth: 120,
  trailingComma: 'all',
  sortPackageJson: false,
  // Made by programs.
  ignorePatterns: [
    'dist/',
    'dist.new*/',
    'dist.old/',
    'data/',
    'coverage/',
    'package-lock.json',
    'web/generated/',
    'web/test-results/',
  ],
});
