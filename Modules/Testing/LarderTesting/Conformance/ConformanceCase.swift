/// A check of one promise on one kind of store, created by a ``ConformanceSuite``.
///
/// Cases are independent, and each has its own location, so cases can run in any order and in parallel.
///
/// ```swift
/// @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
///   try await conformanceCase.run()
/// }
/// ```
public struct ConformanceCase: Sendable, Identifiable {
  /// The number of the rule that the case checks, which never changes meaning, such as `85a`.
  ///
  /// Cases that check the same rule have the same number and different letters.
  public let id: String

  /// The rule that must hold, in a few words.
  public let name: String

  /// The topic of the case.
  public let group: ConformanceGroup

  /// The promise that it checks.
  public let promise: ConformancePromise

  /// The capabilities that the case requires of a store.
  public let needs: StoreCapabilities

  /// The source location of the case, such as `LarderTesting/PointCases.swift:20`.
  let place: String

  let body: @Sendable (ConformanceCase) async throws -> Void

  /// The number without the letter.
  public var number: Int { Int(id.prefix { $0.isNumber }) ?? 0 }

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
public enum ConformanceGroup: Sendable, Hashable, CaseIterable {
  case points, keys, values, multiGet, batches, updates, scans, pages, clear, lifecycle, reopening, damage, errors
  case cancellation, concurrency, histories, observation, queues
}
