import { Grid, Stack } from '@mantine/core';
import { SendMissedLink } from '../../selection/send-missed-link.tsx';
import { useMay } from '../../shell/session.tsx';
import type { SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { told } from '../../parts/told.ts';
import { isComplete, toChannels, toDrafts } from '../../subscriptions/filter-drafts.ts';
import { FiltersEditor } from '../../subscriptions/filters-editor.tsx';
import { FiltersPreview } from '../../subscriptions/filters-preview.tsx';
import { useSubscriptionTexts } from './texts.ts';
import { useSubscriptionDraft } from './use-save.ts';

export function FiltersTab({ subscription, tag }: { subscription: SubscriptionWithHeld; tag: string | undefined }) {
  const t = useSubscriptionTexts();
  const mayChange = useMay('administrator');
  const draft = useSubscriptionDraft({
    subscription,
    tag,
    fields: ({ channels }) => toDrafts(channels),
    asStored: toChannels,
    changes: (entries) => ({ channels: toChannels(entries) }),
  });
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <Stack gap="md">
          <FiltersEditor value={draft.value} onChange={draft.change} isReadOnly={!mayChange} />
          {mayChange && (
            <DraftBar draft={draft} isInvalid={!isComplete(draft.value)} onSaved={() => told(t('filtersSaved'))} />
          )}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Stack gap="md">
          <FiltersPreview drafts={draft.value} />
          {/* With the filters as they are saved. */}
          {!draft.isDirty && <SendMissedLink subscriptionId={subscription.id} />}
        </Stack>
      </Grid.Col>
    </Grid>
  );
}
