import Dispatch
import Foundation
import Larder
import Synchronization

/// The cases of a suite; an extension in each file of cases adds its own.
struct CaseList<Store: DataStore> where Store.Value == SampleValue? {
  typealias Opener = @Sendable (ConformanceLocation) async throws -> Store

  let suite: String
  let lacking: StoreCapabilities
  let seed: UInt64
  let rounds: Int
  /// The length in bytes of the longest key that the store accepts.
  let maximumKeyLength: Int
  let timeLimit: Duration
  let child: ConformanceChild.Start?
  let open: Opener
  private(set) var cases: [ConformanceCase] = []

  init(
    suite: String, lacking: StoreCapabilities, seed: UInt64, rounds: Int, maximumKeyLength: Int, timeLimit: Duration,
    child: ConformanceChild.Start?, open: @escaping Opener
  ) {
    self.suite = suite
    self.lacking = lacking
    self.seed = seed
    self.rounds = rounds
    self.maximumKeyLength = maximumKeyLength
    self.timeLimit = timeLimit
    self.child = child
    self.open = open
  }

  mutating func addAll() {
    addPointCases()
    addKeyCases()
    addValueCases()
    addMultiGetCases()
    addBatchCases()
    addUpdateCases()
    addScanCases()
    addPageCases()
    addClearCases()
    addLifecycleCases()
    addReopeningCases()
    addDamageCases()
    addErrorCases()
    addCancellationCases()
    addConcurrencyCases()
    addHistoryCases()
    addMaintenanceCases()
    addFileCases()
    addSizeCases()
    addAlteredFileCases()
    addProcessCases()
  }

  /// Adds a case.
  ///
  /// - Parameters:
  ///   - number: The number of the case.
  ///   - variant: The letter that follows the number; defaults to an empty string.
  ///   - name: The rule that must hold.
  ///   - group: The topic of the case.
  ///   - promise: The promise that the case checks.
  ///   - needs: The capabilities that the case requires of the store; defaults to none.
  ///   - body: A closure that throws a ``Mismatch`` if the promise is broken.
  mutating func add(
    _ number: Int, _ variant: String = "", _ name: String, in group: ConformanceGroup,
    checks promise: ConformancePromise, needs: StoreCapabilities = [],
    _ body: @escaping @Sendable (Trial<Store>) async throws -> Void
  ) {
    let (suite, lacking, seed, open) = (suite, lacking, seed, open)
    let (timeLimit, child) = (timeLimit, child)
    cases.append(
      ConformanceCase(number: number, variant: variant, name: name, group: group, promise: promise, needs: needs) {
        conformanceCase in
        do {
          try await TimeLimit(timeLimit, of: "case \(conformanceCase) of \(suite)").run {
            let trial = try Trial(
              location: ConformanceLocation(), lacking: lacking, seed: seed, purpose: conformanceCase.id, child: child,
              opener: open)
            try await trial.run(body)
          }
        } catch let mismatch as Mismatch {
          throw ConformanceFailure(mismatch, in: conformanceCase, of: suite, seed: seed)
        } catch {
          try Task.checkCancellation()
          let mismatch = Mismatch(
            subject: "running the case", expected: "no error", got: text(of: error), place: "")
          throw ConformanceFailure(mismatch, in: conformanceCase, of: suite, seed: seed, underlying: error)
        }
      })
  }
}

/// A time limit for an operation, even one that does not respond to cancellation.
private struct TimeLimit: Sendable {
  /// The queue of all timers, which has a thread even if hanging operations block all threads of the cooperative pool.
  private static let queue = DispatchQueue(label: "LarderTesting.TimeLimit")

  private let duration: Duration
  private let what: String

  init(_ duration: Duration, of what: String) {
    self.duration = duration
    self.what = what
  }

  /// Runs an operation in a separate task.
  ///
  /// When the time limit is reached, the task is cancelled but not awaited.
  ///
  /// - Throws: Any error from the operation; a ``Mismatch`` if the time limit is reached first.
  func run(_ operation: @escaping @Sendable () async throws -> Void) async throws {
    let race = Race()
    let task = Task {
      do {
        try await operation()
        race.end(with: .success(()))
      } catch {
        race.end(with: .failure(error))
      }
    }
    let timer = DispatchSource.makeTimerSource(queue: TimeLimit.queue)
    timer.setEventHandler { [what, duration] in
      let mismatch = Mismatch(
        subject: "the duration of the case", expected: "an end within \(duration)",
        got: "the case is still running or waiting", place: "")
      guard race.end(with: .failure(mismatch)) else { return }
      // Written immediately, because no test can report the failure if every thread of the cooperative pool is blocked.
      FileHandle.standardError.write(Data("LarderTesting: \(what) did not end within \(duration)\n".utf8))
      task.cancel()
    }
    timer.schedule(deadline: .now() + duration / .seconds(1))
    timer.activate()
    defer { timer.cancel() }
    try await withTaskCancellationHandler {
      await race.winner()
    } onCancel: {
      task.cancel()
    }.get()
  }
}

/// A race between results, of which one waiter receives the first.
private final class Race: Sendable {
  private struct State {
    var first: Result<Void, any Error>?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Ends the race if it has not ended.
  ///
  /// - Returns: Whether this result is the first.
  @discardableResult
  func end(with result: Result<Void, any Error>) -> Bool {
    let (isFirst, waiter) = state.withLock { state in
      guard state.first == nil else { return (false, nil as CheckedContinuation<Void, Never>?) }
      state.first = result
      return (true, state.waiter)
    }
    waiter?.resume()
    return isFirst
  }

  /// Returns the first result when there is one.
  func winner() async -> Result<Void, any Error> {
    while true {
      if let first = state.withLock({ $0.first }) { return first }
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.first == nil { state.waiter = continuation }
          return state.first != nil
        }
        if isOver { continuation.resume() }
      }
    }
  }
}
