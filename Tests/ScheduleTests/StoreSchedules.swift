import Larder
import LarderTesting
import TestSupport
import Testing

/// Decorators and stacks in many schedules: three tasks whose results one order of all operations must explain.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct StoreSchedules {
  @Test(arguments: StoreSubject.all.indices) func `one order explains all results`(_ index: Int) async throws {
    let subject = StoreSubject.all[index]
    try await runSchedules(subject.name) { context in
      try await history(of: subject, context)
        .runConcurrently(rounds: 1, seed: context.seed, tasks: 3, length: 5)
    }
  }

  /// An error before or after an operation of the base must have the outcome that it claims.
  @Test(arguments: StoreSubject.all.indices.filter { StoreSubject.all[$0].keepsAcknowledgedWrites })
  func `errors have their outcome`(_ index: Int) async throws {
    let subject = StoreSubject.all[index]
    try await runSchedules("\(subject.name), with errors") { context in
      try await history(of: subject, context, errorProbability: 0.06)
        .runConcurrently(rounds: 1, seed: context.seed, tasks: 3, length: 5, mayFail: true)
    }
  }

  /// A cancelled operation has had no effect, and others don't notice it.
  @Test(arguments: StoreSubject.all.indices, [false, true])
  func `a cancelled operation has no effect`(_ index: Int, withErrors: Bool) async throws {
    let subject = StoreSubject.all[index]
    guard subject.keepsAcknowledgedWrites || !withErrors else { return }
    let suffix = withErrors ? " and errors" : ""
    // Some decorators cancel tasks of their own, in the middle of which no other work may run.
    try await runSchedules("\(subject.name), with cancellations\(suffix)", switchesAtLocks: false) { context in
      try await history(of: subject, context, errorProbability: withErrors ? 0.06 : 0)
        .runConcurrently(
          rounds: 1, seed: context.seed, tasks: 3, length: 5, mayFail: withErrors, mayCancel: context.mayCancel)
    }
  }

  /// Closing waits for the operations that have begun, however they end, and all later ones are refused.
  @Test(arguments: StoreSubject.all.indices) func `closing waits for operations`(_ index: Int) async throws {
    let subject = StoreSubject.all[index]
    try await runSchedules("\(subject.name), closed") { context in
      let store = try await subject.open(StoreSubject.Bases(context))
      try await concurrently(3) { task in
        var generator = context.generator("task \(task)")
        if task == 2 {
          await context.pause(upTo: 8, &generator)
          return try await store.close()
        }
        do {
          for number in 1...4 {
            try await store.setValue(number, forKey: StoreKey("\(task)"))
            guard try await store.value(forKey: StoreKey("\(task)")) == number else { throw Wrong("\(number) is lost") }
          }
        } catch StoreError.Code.closed {}
      }
      do {
        _ = try await store.value(forKey: "0")
        throw Wrong("a closed store has answered")
      } catch StoreError.Code.closed {}
    }
  }

  private func history(
    of subject: StoreSubject, _ context: ScheduledContext, errorProbability: Double = 0
  ) -> HistoryTrial<AnyDataStore<Int>> {
    HistoryTrial(subject.name) { _ in
      let bases = StoreSubject.Bases(context)
      let store = try await subject.open(bases)
      if errorProbability > 0 { bases.fail(withProbability: errorProbability) }
      return store
    }
  }
}
