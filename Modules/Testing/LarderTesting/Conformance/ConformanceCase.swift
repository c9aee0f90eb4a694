/// One check of one promise on one kind of store, made by a ``ConformanceSuite``.
///
/// A case is independent of every other and has a location of its own, so that cases can run in any order and at once.
public struct ConformanceCase: Sendable, Identifiable {
  /// The number; it never changes meaning.
  ///
  /// Cases that check the same rule share it.
  public let number: Int

  /// What tells cases with the same number apart: a letter, or nothing.
  public let variant: String

  /// What must hold, in a few words.
  public let name: String

  /// What the case is about.
  public let group: ConformanceGroup

  /// The promise that it checks.
  public let promise: ConformancePromise

  /// What a store must be able to do for the case to make sense.
  public let needs: StoreAbilities

  let body: @Sendable (ConformanceCase) async throws -> Void

  /// The number and the variant, like `85a`.
  public var id: String { "\(number)\(variant)" }

  /// Opens a fresh store, checks it, closes it, and removes what it left.
  ///
  /// - Throws: ``ConformanceFailure`` where the store breaks the promise; `CancellationError` where the task is cancelled.
  public func run() async throws {
    try await body(self)
  }
}

extension ConformanceCase: CustomStringConvertible {
  /// The number, the group and the name.
  public var description: String { "\(id) (\(group)): \(name)" }
}
