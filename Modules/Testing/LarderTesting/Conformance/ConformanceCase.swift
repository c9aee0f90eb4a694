/// A check of one promise on one kind of store, created by a ``ConformanceSuite``.
///
/// Cases are independent, and each has its own location, so cases can run in any order and in parallel.
public struct ConformanceCase: Sendable, Identifiable {
  /// The number of the rule that the case checks, which never changes meaning.
  ///
  /// Cases that check the same rule share a number.
  public let number: Int

  /// A letter that distinguishes cases with the same number, or an empty string.
  public let variant: String

  /// The rule that must hold, in a few words.
  public let name: String

  /// The topic of the case.
  public let group: ConformanceGroup

  /// The promise that it checks.
  public let promise: ConformancePromise

  /// The capabilities that the case requires of a store.
  public let needs: StoreCapabilities

  let body: @Sendable (ConformanceCase) async throws -> Void

  /// The number and the variant, such as `85a`.
  public var id: String { "\(number)\(variant)" }

  /// Opens a fresh store, checks it, closes it, and removes its data.
  ///
  /// - Throws: ``ConformanceFailure`` if the store breaks the promise; `CancellationError` if the task is cancelled.
  public func run() async throws {
    try await body(self)
  }
}

extension ConformanceCase: CustomStringConvertible {
  /// The number, the group and the name.
  public var description: String { "\(id) (\(group)): \(name)" }
}

/// The topic of a case of the conformance suite.
public enum ConformanceGroup: String, Sendable, Hashable, CaseIterable {
  /// Reading, writing and removing single keys.
  case points
  /// Which keys are valid, and which are equal.
  case keys
  /// Values of every kind and size.
  case values
  /// Reading several keys in one call.
  case multiGet
  /// Batches of changes.
  case batches
  /// Atomic updates.
  case updates
  /// Scans over ranges.
  case scans
  /// Paging through ranges.
  case pages
  /// Removing ranges.
  case clear
  /// Closing.
  case lifecycle
  /// Reopening a store that was closed, was not closed, or is open in another process.
  case reopening
  /// Entries that cannot be decoded, and altered files.
  case damage
  /// The contents of errors.
  case errors
  /// Cancelled tasks.
  case cancellation
  /// Concurrent tasks.
  case concurrency
  /// Random and exhaustive histories, checked against a model.
  case histories
}

extension ConformanceGroup: CustomStringConvertible {
  /// The name of the group.
  public var description: String { rawValue }
}
