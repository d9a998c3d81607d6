import { CodeHighlight, CodeHighlightAdapterProvider, createHighlightJsAdapter } from '@mantine/code-highlight';
import '@mantine/code-highlight/styles.css';
import core from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import { defineTexts } from '../i18n/i18n.ts';
import './json-view.css';

core.registerLanguage('json', json);
core.registerLanguage('bash', bash);

const adapter = createHighlightJsAdapter(core);

const useTexts = defineTexts(
  'code',
  { copy: 'Copy', copied: 'Copied', expand: 'Show all', collapse: 'Show less' },
  { copy: 'Kopieer', copied: 'Gekopieerd', expand: 'Toon alles', collapse: 'Toon minder' },
);

/** Longer than this is shown without colours: to find them takes longer than to read it. */
const mostColoured = 200_000;

interface Props {
  code: string;
  language?: 'json' | 'bash';
}

/** Code with colours and a button that copies it. Load it lazily: `lazy(() => import('../parts/json-view.tsx'))`. */
export default function JsonView({ code, language = 'json' }: Props) {
  const t = useTexts();
  return (
    <CodeHighlightAdapterProvider adapter={adapter}>
      <CodeHighlight
        code={code}
        language={code.length > mostColoured ? 'plaintext' : language}
        withExpandButton={code.split('\n', 31).length > 30}
        defaultExpanded={code.length < 20_000}
        copyLabel={t('copy')}
        copiedLabel={t('copied')}
        expandCodeLabel={t('expand')}
        collapseCodeLabel={t('collapse')}
        radius="md"
      />
    </CodeHighlightAdapterProvider>
  );
}
