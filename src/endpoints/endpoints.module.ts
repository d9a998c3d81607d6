import { Module } from '@nestjs/common';
import { Admission } from './admission.service.js';
import { HoldRule } from './hold-rule.service.js';
import { OpenEndpoints } from './open-endpoints.service.js';

@Module({ providers: [OpenEndpoints, HoldRule, Admission], exports: [OpenEndpoints, HoldRule, Admission] })
export class EndpointsModule {}
