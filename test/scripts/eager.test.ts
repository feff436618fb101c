import { expect, test } from 'vitest'
import { compiledOnLoad, statementsOnLines } from '../../scripts/eager.ts'

/** The default export of a module with this code. */
const exported = async (code: string) =>
  (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default as unknown

test('each function at the top of a chunk is put in brackets, and no other', () => {
  expect(compiledOnLoad('const a=1;function b(){return()=>a}const c=x=>x,d=2;class E{f(){}}')).toBe(
    'const b=(function b(){return()=>a});const a=1;const c=(x=>x),d=2;class E{f(){}}',
  )
  expect(compiledOnLoad('async function a(){}function*b(){}export{a,b};')).toBe(
    'const a=(async function a(){}),b=(function*b(){});export{a,b};',
  )
  expect(compiledOnLoad('const a=1;')).toBe('const a=1;')
})

test('a function may still be called above the line that declares it, keeps its name, and calls itself', async () => {
  const code =
    'const first=sum(3);function sum(n){return n===0?0:n+sum(n-1)}const twice=n=>n*2;export default [first,twice(2),sum.name,twice.name]'
  expect(await exported(compiledOnLoad(code))).toEqual(await exported(code))
  expect(await exported(compiledOnLoad(code))).toEqual([6, 4, 'sum', 'twice'])
})

test('each statement, class member and function of an object begins a line, and the code does the same', async () => {
  const code =
    'const a={f:()=>{let x=1;return x},g:2};class B{static #n=3;static get n(){return B.#n}async m(){}}function f(x){if(x)return`a;\n{b}`;switch(x){case 0:x=1;default:return x}}let i=0;do i++;while(i<3)export default[a.f(),B.n,f(1),f(0),i]'
  const split = statementsOnLines(code)
  expect(await exported(split)).toEqual(await exported(code))
  expect(split.split('\n').map((line) => line.length)).toSatisfy(
    (lengths: number[]) => Math.max(...lengths) < 45,
  )
  expect(statementsOnLines(split)).toBe(split)
})
