import { Module } from '@nestjs/common';
import { HoldRule } from './hold-rule.service.js';
import { OpenEndpoints } from './open-endpoints.service.js';

@Module({ providers: [OpenEndpoints, HoldRule], exports: [OpenEndpoints, HoldRule] })
export class EndpointsModule {}
