#!/usr/bin/env -S node --
// npm's shims for cmd and PowerShell start what this line names, and cannot start a shell script.
import './platformctl.js'
