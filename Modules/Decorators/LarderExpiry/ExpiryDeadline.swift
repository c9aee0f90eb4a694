public import Foundation
import Larder

/// The instant when an entry expires, and whether reads move it.
///
/// An entry is live while the time is before its deadline. Deadlines have microsecond precision.
public struct ExpiryDeadline: Sendable, Hashable {
  /// The divisor of the window that gives the time after which a read moves the deadline again.
  private static let partsOfWindow: Int64 = 10

  /// The first instant when the entry is absent.
  @usableFromInline
  let time: WallTime

  /// The window of a sliding deadline in microseconds, at least 1, or `nil` if reads do not move the deadline.
  @usableFromInline
  let windowMicroseconds: Int64?
}

extension ExpiryDeadline {
  /// Creates a deadline that reads do not move.
  ///
  /// - Parameter date: The first instant when the entry is absent, rounded to the nearest microsecond.
  public init(_ date: Date) {
    self.init(time: WallTime(date), windowMicroseconds: nil)
  }

  /// The first instant when the entry is absent.
  public var date: Date { time.date }

  /// The time by which a read moves the deadline beyond the read, or `nil` if reads do not move it.
  public var window: Duration? { windowMicroseconds.map { .microseconds($0) } }

  /// Returns whether the deadline has passed.
  @inlinable
  func isPast(at now: WallTime) -> Bool {
    now >= time
  }

  /// Returns the deadline after a read, or `nil` if the read does not move it.
  ///
  /// A deadline moves only after a tenth of the window has passed since it was last moved, so there are at most ten
  /// writes per window, whatever the number of reads. A deadline that lies further ahead than its window, by more than
  /// that tenth or a minute, was set before the clock was set back. It is moved as well, so the entry does not live
  /// that much longer.
  @usableFromInline
  func moved(byReadAt now: WallTime) -> ExpiryDeadline? {
    guard let windowMicroseconds else { return nil }
    let remaining = now.microseconds(until: time)
    let (whole, rest) = windowMicroseconds.quotientAndRemainder(dividingBy: ExpiryDeadline.partsOfWindow)
    let part = whole + (rest > 0 ? 1 : 0)
    let tolerance = min(part, WallClock.tolerance.wholeMicroseconds)
    let isFarOff = remaining > windowMicroseconds && remaining - windowMicroseconds > tolerance
    guard remaining <= windowMicroseconds - part || isFarOff else { return nil }
    return now.advanced(byMicroseconds: windowMicroseconds).map {
      ExpiryDeadline(time: $0, windowMicroseconds: windowMicroseconds)
    }
  }
}

extension ExpiryDeadline {
  /// Creates a deadline from stored values, or returns `nil` if none is stored.
  ///
  /// - Parameters:
  ///   - expires: The deadline in microseconds since 1970.
  ///   - window: The window in microseconds.
  /// - Throws: `ValueFormatError` if there is a window without a deadline, or a window that is not greater than
  ///   zero.
  init?(expires: Int64?, window: Int64?) throws {
    if let window, window <= 0 { throw ValueFormatError("the window of a deadline must be greater than zero") }
    guard let expires else {
      guard window == nil else { throw ValueFormatError("the value has a window but no deadline") }
      return nil
    }
    self.init(time: WallTime(microseconds: expires), windowMicroseconds: window)
  }
}

extension TimeToLive {
  /// Returns the deadline of an entry that is written now, or `nil` if it does not expire.
  func deadline(from now: WallTime) -> ExpiryDeadline? {
    switch self {
    case .never: nil
    case .after(let timeToLive):
      now.advanced(byMicroseconds: timeToLive.wholeMicroseconds).map {
        ExpiryDeadline(time: $0, windowMicroseconds: nil)
      }
    case .sliding(let window):
      now.advanced(byMicroseconds: window.wholeMicroseconds).map {
        ExpiryDeadline(time: $0, windowMicroseconds: window.wholeMicroseconds)
      }
    case .until(let date): ExpiryDeadline(date)
    }
  }

  /// Throws an error if this time to live is invalid.
  ///
  /// - Parameters:
  ///   - operation: The operation that the error names.
  ///   - store: The information of the store.
  /// - Throws: `StoreError` with `invalidArgument`.
  func check(for operation: StoreOperation, of store: @autoclosure () -> StoreInformation) throws {
    let message: String
    switch self {
    case .after(let duration) where duration <= .zero, .sliding(let duration) where duration <= .zero:
      message =
        "a time to live must be greater than zero, not \(duration); use `never` for an entry that does not expire"
    case .until(let date) where date.timeIntervalSince1970.isNaN:
      message = "the date of a deadline must not be NaN"
    case .never, .after, .sliding, .until: return
    }
    throw StoreError(.invalidArgument, during: operation, store: store().name, message: message)
  }
}

/// A wall-clock time in microseconds.
///
/// It is used in place of a `Date`, whose floating-point number would have to be rounded for each comparison.
@usableFromInline
struct WallTime: Sendable, Hashable {
  /// The microseconds since 1970.
  @usableFromInline
  let microseconds: Int64
}

extension WallTime {
  /// Creates the time nearest to a date, limited to the range of `Int64`.
  init(_ date: Date) {
    microseconds = date.microsecondsSince1970
  }

  /// The time as a date.
  var date: Date { Date(microsecondsSince1970: microseconds) }

  /// Returns a time that is later by a duration, or `nil` on overflow.
  func advanced(byMicroseconds duration: Int64) -> WallTime? {
    let (sum, overflows) = microseconds.addingReportingOverflow(duration)
    return overflows ? nil : WallTime(microseconds: sum)
  }

  /// Returns the microseconds from this time until another one, limited to the range of `Int64`.
  func microseconds(until other: WallTime) -> Int64 {
    let (difference, overflows) = other.microseconds.subtractingReportingOverflow(microseconds)
    guard overflows else { return difference }
    return other > self ? .max : .min
  }
}

extension WallTime: Comparable {
  @inlinable
  static func < (left: WallTime, right: WallTime) -> Bool {
    left.microseconds < right.microseconds
  }
}
