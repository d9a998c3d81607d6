import { Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { errorOf } from '../../parts/field-errors.tsx';
import { NumberField } from '../../parts/number-field.tsx';
import { useMay } from '../../shell/session.tsx';
import type { SubscriptionChanges, SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { told } from '../../parts/told.ts';
import { useSubscriptionTexts } from './texts.ts';
import { useSubscriptionDraft } from './use-save.ts';

const fieldsOf = (subscription: SubscriptionWithHeld) => ({
  callbackUrl: subscription.callbackUrl,
  timeoutSeconds: subscription.timeoutSeconds,
  maxConcurrency: subscription.maxConcurrency,
  ratePerSecond: subscription.ratePerSecond,
  ordering: subscription.ordering,
  deliveryGuarantee: subscription.deliveryGuarantee,
  alertEmail: subscription.alertEmail,
});

type Fields = ReturnType<typeof fieldsOf>;

/** Only what was changed: a callback that is sent along is called where the subscription is disabled. */
function changedFields(value: Fields, before: SubscriptionWithHeld): SubscriptionChanges {
  const from = fieldsOf(before);
  return Object.fromEntries(
    Object.entries(value).filter(([name, each]) => each !== from[name as keyof Fields]),
  ) as SubscriptionChanges;
}

export function DeliveryTab({ subscription, tag }: { subscription: SubscriptionWithHeld; tag: string | undefined }) {
  const t = useSubscriptionTexts();
  const isReadOnly = !useMay('administrator');
  const draft = useSubscriptionDraft({ subscription, tag, fields: fieldsOf, changes: changedFields });
  const { value } = draft;
  const put = (changed: Partial<Fields>) => draft.change({ ...value, ...changed });
  const refused = (name: string) => errorOf(draft.error, name);
  const number = (
    name: 'timeoutSeconds' | 'maxConcurrency' | 'ratePerSecond',
    help: string,
    max: number,
    isWhole = false,
  ) => (
    <NumberField
      label={t(name)}
      description={help}
      value={value[name]}
      placeholder="–"
      min={isWhole ? 1 : 0}
      max={max}
      allowDecimal={!isWhole}
      allowNegative={false}
      readOnly={isReadOnly}
      error={refused(name)}
      onChange={(given) => put({ [name]: given })}
    />
  );
  const { effectiveGuarantee, deliveryGuarantee } = subscription;
  const becomesOrdered = value.ordering === 'per-object' && subscription.ordering === 'none';
  return (
    <Stack gap="md" maw={860}>
      <TextInput
        label={t('callbackUrl')}
        description={t('callbackUrlHelp')}
        type="url"
        value={value.callbackUrl}
        readOnly={isReadOnly}
        error={refused('callbackUrl')}
        onChange={(event) => put({ callbackUrl: event.currentTarget.value })}
      />
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        {number('ratePerSecond', t('ratePerSecondHelp'), 100_000)}
        {number('maxConcurrency', t('maxConcurrencyHelp'), 10_000, true)}
        {number('timeoutSeconds', t('timeoutHelp'), 300)}
      </SimpleGrid>
      <Select
        label={t('ordering')}
        data={(['none', 'per-object'] as const).map((each) => ({ value: each, label: t(each) }))}
        value={value.ordering}
        allowDeselect={false}
        readOnly={isReadOnly}
        onChange={(ordering) => put({ ordering: ordering === 'per-object' ? 'per-object' : 'none' })}
      />
      <Select
        label={t('deliveryGuarantee')}
        data={[
          {
            value: '',
            label:
              deliveryGuarantee === null
                ? t('asOwner', { guarantee: t(effectiveGuarantee) })
                : t('asOwner', { guarantee: '–' }),
          },
          ...(['at-least-once', 'at-most-once'] as const).map((each) => ({ value: each, label: t(each) })),
        ]}
        value={value.deliveryGuarantee ?? ''}
        allowDeselect={false}
        readOnly={isReadOnly}
        onChange={(each) => put({ deliveryGuarantee: each === '' ? null : (each as Fields['deliveryGuarantee']) })}
      />
      <TextInput
        label={t('alertEmail')}
        description={t('alertEmailHelp')}
        type="email"
        value={value.alertEmail ?? ''}
        readOnly={isReadOnly}
        error={refused('alertEmail')}
        onChange={(event) => put({ alertEmail: event.currentTarget.value === '' ? null : event.currentTarget.value })}
      />
      {!isReadOnly && <DraftBar draft={draft} onSaved={() => told(t(becomesOrdered ? 'savedOrder' : 'saved'))} />}
    </Stack>
  );
}
