import { Text } from '@mantine/core';
import { defineTexts } from '../i18n/i18n.ts';
import { compareLines, linesOf, type Line } from './diff-lines.ts';
import classes from './field-diff.module.css';

const useTexts = defineTexts(
  'diff',
  {
    label: 'Fields before and after',
    field: 'Field',
    before: 'Before',
    after: 'After',
    nothing: 'nothing',
    removed: 'removed:',
    added: 'added:',
  },
  {
    label: 'Velden voor en na',
    field: 'Veld',
    before: 'Voor',
    after: 'Na',
    nothing: 'niets',
    removed: 'verwijderd:',
    added: 'toegevoegd:',
  },
);

export interface ComparedField {
  name: string;
  /** undefined: it was, or is, not there. */
  before: unknown;
  after: unknown;
  /** In the place of both, where neither is told. */
  instead?: string;
}

/** Fields side by side, with the lines marked that differ: by sign as well as by colour. */
export function FieldDiff({ fields }: { fields: readonly ComparedField[] }) {
  const t = useTexts();
  return (
    <table className={classes.table} aria-label={t('label')}>
      <thead>
        <tr>
          <th scope="col">{t('field')}</th>
          <th scope="col">{t('before')}</th>
          <th scope="col">{t('after')}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map(({ name, before, after, instead }) => {
          const [left, right] = compareLines(linesOf(before), linesOf(after));
          return (
            <tr key={name}>
              <th scope="row">{name}</th>
              {instead !== undefined ? (
                <td colSpan={2}>
                  <Text size="sm" fs="italic">
                    {instead}
                  </Text>
                </td>
              ) : (
                <>
                  <td data-title={t('before')}>
                    <Side lines={left} sign="−" word={t('removed')} nothing={t('nothing')} />
                  </td>
                  <td data-title={t('after')}>
                    <Side lines={right} sign="+" word={t('added')} nothing={t('nothing')} />
                  </td>
                </>
              )}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Side({ lines, sign, word, nothing }: { lines: Line[]; sign: '−' | '+'; word: string; nothing: string }) {
  if (lines.length === 0)
    return (
      <Text size="xs" c="dimmed" fs="italic">
        {nothing}
      </Text>
    );
  return (
    <div className={classes.side}>
      {lines.map(({ text, isChanged }, index) => (
        <div key={index} className={isChanged ? (sign === '+' ? classes.added : classes.removed) : undefined}>
          <span className={classes.sign} aria-label={isChanged ? word : undefined} role={isChanged ? 'img' : undefined}>
            {isChanged ? sign : ' '}
          </span>
          {text}
        </div>
      ))}
    </div>
  );
}
