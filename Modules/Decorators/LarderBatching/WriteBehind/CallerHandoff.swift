/// How the outcome of a call gets to the task that waits for it: plain state.
///
/// A call can be over before its task has begun to wait; the outcome is then kept.
enum CallerHandoff<Waiter: Sendable>: Sendable {
  /// The task does not wait yet.
  case running
  case waiting(Waiter)
  case over(TurnOutcome)

  /// The task begins to wait.
  ///
  /// - Returns: The outcome where it is there already; the waiter is then not kept.
  mutating func wait(_ waiter: Waiter) -> TurnOutcome? {
    if case .over(let outcome) = self { return outcome }
    self = .waiting(waiter)
    return nil
  }

  /// The call is over.
  ///
  /// - Returns: Who is to be told, where somebody waits.
  mutating func end(_ outcome: TurnOutcome) -> Waiter? {
    if case .waiting(let waiter) = self {
      self = .over(outcome)
      return waiter
    }
    self = .over(outcome)
    return nil
  }
}
