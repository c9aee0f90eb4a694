import Dispatch
import Foundation
import Larder

/// The cases of a suite; an extension in each file of cases adds its own.
struct CaseList<Store: DataStore> where Store.Value == SampleValue? {
  let settings: SuiteSettings<Store>
  private(set) var cases: [ConformanceCase] = []
  private var group = ConformanceGroup.points
  private var promise = ConformancePromise.missing

  init(_ settings: SuiteSettings<Store>) {
    self.settings = settings
    addPointCases()
    addKeyCases()
    addValueCases()
    addMultiGetCases()
    addBatchCases()
    addClearCases()
    addUpdateCases()
    addScanCases()
    addPageCases()
    addLifecycleCases()
    addClosingCases()
    addReopeningCases()
    addDamageCases()
    addAlteredFileCases()
    addErrorCases()
    addCancellationCases()
    addConcurrencyCases()
    addHistoryCases()
    addObservationCases()
    addMaintenanceCases()
    addFileCases()
    addCodecCases()
    addCapabilityCases()
    addTransactionCases()
    addProcessCases()
  }

  /// Begins a list of cases with a common topic, most of which check the same promise.
  mutating func begin(_ group: ConformanceGroup, checking promise: ConformancePromise) {
    self.group = group
    self.promise = promise
  }

  /// Adds a case.
  ///
  /// - Parameters:
  ///   - id: The number of the case, and a letter if several cases have that number.
  ///   - name: The rule that must hold.
  ///   - promise: The promise that the case checks. Defaults to the promise of the current list of cases.
  ///   - needs: The capabilities that the case requires of the store. Defaults to an empty set.
  ///   - file: The file that failures name.
  ///   - line: The line that failures name.
  ///   - body: A closure that throws a ``Mismatch`` if the promise is broken.
  mutating func add(
    _ id: String, _ name: String, checks promise: ConformancePromise? = nil, needs: StoreCapabilities = [],
    file: String = #fileID, line: Int = #line, _ body: @escaping @Sendable (Trial<Store>) async throws -> Void
  ) {
    let settings = settings
    cases.append(
      ConformanceCase(
        id: id, name: name, group: group, promise: promise ?? self.promise, needs: needs, place: "\(file):\(line)"
      ) { conformanceCase in
        do {
          try await TimeLimit(settings.timeLimit, of: "case \(conformanceCase) of \(settings.name)").run {
            try await Trial(settings, purpose: id).run(body)
          }
        } catch let mismatch as Mismatch {
          throw ConformanceFailure(mismatch, in: conformanceCase, of: settings.name, seed: settings.seed)
        } catch {
          try Task.checkCancellation()
          throw ConformanceFailure(
            Mismatch(subject: "running the case", expected: "no error", got: text(of: error)),
            in: conformanceCase, of: settings.name, seed: settings.seed)
        }
      })
  }

  /// Adds a case that begins with an open store.
  ///
  /// - Parameters:
  ///   - id: The number of the case, and a letter if several cases have that number.
  ///   - name: The rule that must hold.
  ///   - keys: The keys in the store, whose values contain them. Defaults to an empty list.
  ///   - promise: The promise that the case checks. Defaults to the promise of the current list of cases.
  ///   - needs: The capabilities that the case requires of the store. Defaults to an empty set.
  ///   - file: The file that failures name.
  ///   - line: The line that failures name.
  ///   - body: A closure that throws a ``Mismatch`` if the promise is broken.
  mutating func add(
    _ id: String, _ name: String, keys: [StoreKey] = [], checks promise: ConformancePromise? = nil,
    needs: StoreCapabilities = [], file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Store, Trial<Store>) async throws -> Void
  ) {
    add(id, name, checks: promise, needs: needs, file: file, line: line) { trial in
      try await body(trial.open(with: Entries(keys: keys)), trial)
    }
  }
}

/// A time limit for an operation, even one that does not respond to cancellation.
struct TimeLimit: Sendable {
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
    // Only the first result is kept.
    let (results, end) = AsyncStream.makeStream(of: Result<Void, any Error>.self, bufferingPolicy: .bufferingOldest(1))
    let task = Task {
      do {
        try await operation()
        end.yield(.success(()))
      } catch {
        end.yield(.failure(error))
      }
    }
    let timer = DispatchSource.makeTimerSource(queue: TimeLimit.queue)
    timer.setEventHandler { [what, duration] in
      let mismatch = Mismatch(
        subject: "the duration of the case", expected: "an end within \(duration)",
        got: "the case is still running or waiting")
      guard case .enqueued = end.yield(.failure(mismatch)) else { return }
      // Written immediately, because no test can report the failure if every thread of the cooperative pool is blocked.
      FileHandle.standardError.write(Data("LarderTesting: \(what) did not end within \(duration)\n".utf8))
      task.cancel()
    }
    timer.schedule(deadline: .now() + duration / .seconds(1))
    timer.activate()
    defer { timer.cancel() }
    // A separate task waits, because a cancelled task would not wait for the end of the operation.
    let waiting = Task { await results.first { _ in true } }
    try await withTaskCancellationHandler {
      await waiting.value
    } onCancel: {
      task.cancel()
    }?.get()
  }
}
