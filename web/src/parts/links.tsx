import { Anchor, Button, type AnchorProps, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentProps } from 'react';

type Element<Props> = Props & Omit<ComponentProps<'a'>, keyof Props>;

/** To a page of the console. */
export const AnchorLink = createLink((props: Element<AnchorProps>) => <Anchor {...props} />);
export const ButtonLink = createLink((props: Element<ButtonProps>) => <Button component="a" {...props} />);
