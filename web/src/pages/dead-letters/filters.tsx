import { Badge, Button, CloseButton, Group, SimpleGrid, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { FoldedFilters } from '../../parts/folded-filters.tsx';
import { useUrlState, type UrlState } from '../../parts/url-state.ts';
import { ChannelField, ErrorField, StateField, SubscriptionField } from '../../selection/fields.tsx';
import { deadStates, type Criteria } from '../../selection/selection.ts';
import { useSelectionTexts } from '../../selection/texts.ts';
import { TimeField } from '../../parts/time-field.tsx';
import type { WrongTimes } from '../../parts/use-wrong-times.ts';
import { criteria as filterNames, queryOf } from '../notifications/criteria.ts';
import { noChoice } from './choice.ts';
import { useDeadLettersTexts } from './texts.ts';

const own = new Set(['subscription', 'channel', 'state', 'errorClass', 'acceptedFrom', 'acceptedTo', 'replay']);

/** Without any, also of those that only other lists have. */
export const noFilters = Object.fromEntries(filterNames.map((name) => [name, undefined]));

/** Those in an address that only other lists have. */
export const othersOf = (state: UrlState) =>
  Object.fromEntries(Object.entries(queryOf(state)).filter(([name]) => !own.has(name)));

interface Props {
  criteria: Criteria;
  isNarrowed: boolean;
  times: WrongTimes;
  onClear: () => void;
}

/** The filters of the list. The selection is emptied with each change. */
export function Filters({ criteria, isNarrowed, times, onClear }: Props) {
  const t = useSelectionTexts();
  const texts = useDeadLettersTexts();
  const [state, set] = useUrlState();
  const chosen = Object.keys(noFilters).filter((name) => state[name] !== undefined).length;
  const narrow = (changes: Parameters<typeof set>[0]) => set({ ...changes, ...noChoice });
  return (
    <search aria-label={texts('filters')}>
      <FoldedFilters chosen={chosen}>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 6 }} spacing="sm" mb="md">
          <SubscriptionField value={criteria.subscriptions[0]} onChange={(subscription) => narrow({ subscription })} />
          <ChannelField value={criteria.channels[0]} onChange={(channel) => narrow({ channel })} />
          <ErrorField value={criteria.errorClasses[0]} onChange={(errorClass) => narrow({ errorClass })} />
          <StateField states={deadStates} value={criteria.states[0]} onChange={(state) => narrow({ state })} />
          {(['acceptedFrom', 'acceptedTo'] as const).map((name) => (
            <TimeField
              key={`${name} ${times.generation}`}
              label={t(name)}
              value={criteria[name]}
              onChange={(time) => narrow({ [name]: time })}
              onWrong={times.note(name)}
            />
          ))}
        </SimpleGrid>
      </FoldedFilters>
      {(isNarrowed || times.isWrong) && (
        <Group gap="sm" mb="md">
          {criteria.replay !== undefined && (
            <Badge
              variant="light"
              size="lg"
              rightSection={
                <CloseButton size="xs" aria-label={t('clearReplay')} onClick={() => narrow({ replay: undefined })} />
              }
            >
              {t('replay')}{' '}
              <Text
                inherit
                td="underline"
                renderRoot={(props) => <Link to="/replays/$id" params={{ id: criteria.replay! }} {...props} />}
              >
                {t('thisReplay')}
              </Text>
            </Badge>
          )}
          <Button size="compact-sm" variant="subtle" onClick={onClear}>
            {texts('clearFilters')}
          </Button>
        </Group>
      )}
    </search>
  );
}
