public import Larder

/// What a ``FaultyStore`` does to an operation.
public enum StoreFault: Sendable, Hashable {
  /// When a fault comes in the course of an operation.
  public enum Moment: Sendable, Hashable {
    /// Before the base is called.
    case before
    /// After the base has done its work and before the caller hears of it.
    case after
  }

  /// The operation fails with a `StoreError` of a code.
  ///
  /// Before the base is called nothing is changed, and the error says so unless another outcome is given. After it a write
  /// has taken effect, and the outcome is always `unknown`. Closing closes the base in either case.
  case error(StoreError.Code, Moment = .before, outcome: StoreError.Outcome = .nothingChanged)

  /// The operation waits until ``FaultyStore/resume(_:)``, or until its task is cancelled.
  case suspension(Moment = .before)

  /// The operation takes so much longer, by the clock of the store.
  case delay(Duration, Moment = .before)

  /// The operation gives way to other tasks, before and after the base is called, a random number of times each, at most
  /// this one.
  case yields(upTo: Int)
}
