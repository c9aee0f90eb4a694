/// A decision of the body of an update: to commit the slots that it assigned, or to discard them.
///
/// ```swift
/// let isReserved = try await store.update(deciding: "seat/7A") { owner in
///   guard owner == nil else { return .discard(false) }
///   owner = name
///   return .commit(true)
/// }
/// ```
///
/// A decision is not `Sendable`, so the compiler refuses it as the result of the form of `update` whose body returns a
/// plain result and always commits. A decision that a body of one expression does not return, as in the branches of an
/// `if`, is a value that is not used, about which the compiler warns.
public enum UpdateDecision<Result> {
  /// The assigned slots are written, and the update returns the result.
  case commit(Result)
  /// Nothing is written, reported or kept, and the update returns the result.
  case discard(Result)

  /// The result that the update returns in both cases.
  @inlinable public var result: Result {
    switch self {
    case .commit(let result), .discard(let result): result
    }
  }

  /// A Boolean value that indicates whether the assigned slots are written.
  @inlinable public var isCommit: Bool {
    switch self {
    case .commit: true
    case .discard: false
    }
  }
}

extension UpdateDecision {
  /// Returns the same decision with another result.
  ///
  /// - Parameter transform: A closure that returns the result of the new decision.
  @inlinable
  public func map<NewResult>(_ transform: (Result) -> NewResult) -> UpdateDecision<NewResult> {
    switch self {
    case .commit(let result): .commit(transform(result))
    case .discard(let result): .discard(transform(result))
    }
  }
}

@available(*, unavailable, message: "use update(deciding:_:) for a body that returns a decision")
extension UpdateDecision: Sendable {}

extension UpdateDecision {
  /// Runs a body that can throw, and carries its error out as the result of a discarded update.
  ///
  /// A decorator uses it if it must throw in an update of its base, such as for a value that cannot be encoded:
  ///
  /// ```swift
  /// try await base.update(deciding: keys) { slots in
  ///   UpdateDecision(catching: {
  ///     slots[0] = try edited(slots[0])
  ///     return .commit(())
  ///   })
  /// }.get()
  /// ```
  ///
  /// - Parameter body: The body.
  @inlinable
  public init<Success>(
    catching body: () throws -> UpdateDecision<Success>
  ) where Result == Swift.Result<Success, any Error> {
    do {
      switch try body() {
      case .commit(let result): self = .commit(.success(result))
      case .discard(let result): self = .discard(.success(result))
      }
    } catch {
      self = .discard(.failure(error))
    }
  }
}

/// The body of an update; see ``DataStore/update(deciding:_:)``.
///
/// It receives a slot for each key with the stored value, assigns new values, and decides whether they are committed. It
/// may run more than once.
public typealias UpdateBody<Value: Sendable, Result> = @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
