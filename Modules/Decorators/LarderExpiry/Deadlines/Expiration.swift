#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import Larder

/// What a write says about when its entry expires.
public enum Expiration: Sendable, Hashable {
  /// It does not expire.
  case never

  /// It expires so long after it was written, whatever is read meanwhile.
  ///
  /// The time is more than zero; a part of a microsecond counts as a whole one. One so long that its end cannot be counted,
  /// which is some 290,000 years off, is as good as ``never``.
  case after(Duration)

  /// It expires so long after it was last read or written.
  ///
  /// Reading moves the deadline only once a tenth of this window has passed since it was moved last, so the entry lives on
  /// for nine tenths of the window at least and for the whole of it at most. The window is as in ``after(_:)``.
  case sliding(Duration)

  /// It expires at a date. One that has come is fine: then there is no entry, and none that was there before.
  case at(Date)

  /// The deadline of an entry that is written now; `nil` where it does not expire.
  func deadline(from now: WallTime) -> Deadline? {
    switch self {
    case .never: nil
    case .after(let lifetime):
      lifetime.microsecondsRoundedUp.flatMap { now.advanced(byMicroseconds: $0) }.map {
        Deadline($0, windowMicroseconds: nil)
      }
    case .sliding(let window):
      window.microsecondsRoundedUp.flatMap { microseconds in
        now.advanced(byMicroseconds: microseconds).map { Deadline($0, windowMicroseconds: microseconds) }
      }
    case .at(let date): Deadline(date)
    }
  }

  /// Refuses what makes no sense.
  ///
  /// - Parameters:
  ///   - operation: What was asked for.
  ///   - store: What the store says of itself.
  /// - Throws: `StoreError` with `invalidArgument`.
  func check(for operation: StoreOperation, of store: @autoclosure () -> StoreInformation) throws {
    let message: String
    switch self {
    case .after(let duration) where duration <= .zero, .sliding(let duration) where duration <= .zero:
      message = "a lifetime is more than zero, this one is \(duration); for none to end there is `never`"
    case .at(let date) where date.timeIntervalSince1970.isNaN:
      message = "the date of a deadline is not a number"
    case .never, .after, .sliding, .at: return
    }
    throw StoreError(.invalidArgument, during: operation, store: store().name, message: message)
  }
}

extension Duration {
  /// The microseconds, a part of one counted as a whole one; `nil` where they are more than can be counted.
  var microsecondsRoundedUp: Int64? {
    // Of a longer one not even the seconds could be counted.
    guard self < .seconds(Int64.max / 1_000_000) else { return nil }
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000
  }
}
