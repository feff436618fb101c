/** The agent's index of the course: one entry per lesson. */
export interface CourseIndex {
  readonly version: 1
  readonly lessons: readonly {
    readonly day: number
    readonly title: string
    readonly topics: readonly string[]
  }[]
}

/** The bundled index, used unless COURSE_INDEX_PATH names another. */
export const BUNDLED_INDEX: CourseIndex = {
  version: 1,
  lessons: [
    { day: 1, title: 'What a qubit is', topics: ['qubit', 'amplitude'] },
    { day: 2, title: 'Superposition, without the cat', topics: ['superposition', 'Hadamard gate'] },
    { day: 3, title: 'What looking does', topics: ['measurement', 'shots', 'no-cloning'] },
    { day: 4, title: 'Gates turn arrows', topics: ['X', 'Z', 'H', 'interference'] },
    { day: 5, title: 'Entanglement', topics: ['CNOT', 'Bell pair'] },
    { day: 6, title: 'Your first algorithm', topics: ['Deutsch', 'oracle'] },
    { day: 7, title: 'Where to go from here', topics: ['error correction', 'Deutsch–Jozsa'] },
  ],
}

/** Parses the text of a course index; undefined when it is not one. */
export function parseCourseIndex(text: string): CourseIndex | undefined {
  try {
    const value = JSON.parse(text) as Partial<CourseIndex> | null
    const lessons = value?.lessons
    const wellFormed =
      value?.version === 1 &&
      Array.isArray(lessons) &&
      lessons.length > 0 &&
      lessons.every(
        (lesson) =>
          Number.isInteger(lesson?.day) && typeof lesson?.title === 'string' && Array.isArray(lesson?.topics),
      )
    return wellFormed ? { version: 1, lessons } : undefined
  } catch {
    return undefined
  }
}
