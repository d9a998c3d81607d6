import { Fieldset, PasswordInput, SimpleGrid, Text, Textarea } from '@mantine/core';
import type { components } from '../../../../generated/admin-api.d.ts';
import type { ConfigurationDraft } from './draft.ts';
import { useConfigurationTexts } from './texts.ts';

type Reference = components['schemas']['PlannedConfigurationText']['references'][number];

interface Props {
  references: readonly Reference[];
  draft: ConfigurationDraft;
  onChange: (changes: Partial<ConfigurationDraft>) => void;
}

/** A field for each variable and file that the text names; the values go with the requests alone. */
export function References({ references, draft, onChange }: Props) {
  const t = useConfigurationTexts();
  const named = new Map<string, { kind: 'env' | 'file'; name: string; fields: string[] }>();
  for (const { kind, name, field } of references) {
    const key = `${kind} ${name}`;
    const known = named.get(key);
    if (known) known.fields.push(field);
    else named.set(key, { kind, name, fields: [field] });
  }
  if (named.size === 0) return null;
  return (
    <Fieldset legend={t('references')}>
      <Text size="sm" c="dimmed" mb="sm">
        {t('referencesHint')}
      </Text>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        {[...named.values()].map(({ kind, name, fields }) => {
          const shared = {
            label: t(kind, { name }),
            description: t('usedBy', { fields: fields.join(', ') }),
            placeholder: t('stays'),
            value: draft[kind][name] ?? '',
            styles: { label: { overflowWrap: 'anywhere' }, description: { overflowWrap: 'anywhere' } } as const,
          };
          const take = (value: string) => onChange({ [kind]: { ...draft[kind], [name]: value } });
          return kind === 'env' ? (
            <PasswordInput
              key={`${kind} ${name}`}
              {...shared}
              onChange={(event) => take(event.currentTarget.value)}
              autoComplete="new-password"
            />
          ) : (
            <Textarea
              key={`${kind} ${name}`}
              {...shared}
              onChange={(event) => take(event.currentTarget.value)}
              rows={2}
              autoComplete="off"
            />
          );
        })}
      </SimpleGrid>
    </Fieldset>
  );
}
