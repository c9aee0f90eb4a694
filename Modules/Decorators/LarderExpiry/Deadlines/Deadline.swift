#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// When an entry expires, and whether reading it puts that off.
///
/// An entry is live as long as the time is before its deadline, which is kept to the microsecond.
public struct Deadline: Sendable, Hashable {
  /// How much of the window has to be gone before a read moves the deadline: one part of so many.
  private static let partsOfWindow: Int64 = 10

  /// The first moment at which the entry is absent.
  @usableFromInline
  let time: WallTime

  /// How far behind a read the deadline lies, in microseconds, at least 1; `nil` where reading does not move it.
  @usableFromInline
  let windowMicroseconds: Int64?

  /// Makes a deadline that reading does not move.
  ///
  /// - Parameter date: The first moment at which the entry is absent; the microsecond next to it counts.
  public init(_ date: Date) {
    self.init(WallTime(date), windowMicroseconds: nil)
  }

  init(_ time: WallTime, windowMicroseconds: Int64?) {
    self.time = time
    self.windowMicroseconds = windowMicroseconds
  }

  /// The first moment at which the entry is absent.
  public var date: Date { time.date }

  /// How far behind a read the deadline lies, or `nil` where reading does not move it.
  public var window: Duration? { windowMicroseconds.map { .microseconds($0) } }

  /// Whether the deadline has passed.
  @inlinable
  func isPast(at now: WallTime) -> Bool {
    now >= time
  }

  /// Where a read moves the deadline; `nil` where it stays.
  ///
  /// It stays until a tenth of the window has passed since it was moved last, so that there are at most ten writes in a
  /// window however many reads. A deadline that lies further off than its window, by more than that tenth, was set before
  /// the clock was put back; it is moved, too, so that the entry does not live on for as long.
  @usableFromInline
  func moved(byReadAt now: WallTime) -> Deadline? {
    guard let windowMicroseconds else { return nil }
    let remaining = now.microseconds(until: time)
    let (whole, rest) = windowMicroseconds.quotientAndRemainder(dividingBy: Deadline.partsOfWindow)
    let part = whole + (rest > 0 ? 1 : 0)
    let isFarOff = remaining > windowMicroseconds && remaining - windowMicroseconds > part
    guard remaining <= windowMicroseconds - part || isFarOff else { return nil }
    return now.advanced(byMicroseconds: windowMicroseconds).map {
      Deadline($0, windowMicroseconds: windowMicroseconds)
    }
  }
}

extension Deadline {
  /// Makes a deadline of what is stored; `nil` where nothing is.
  ///
  /// - Parameters:
  ///   - expires: The microseconds since 1970.
  ///   - window: The microseconds of the window.
  /// - Throws: ``ExpiringFormatError`` where there is a window without a deadline, or one that is not more than zero.
  init?(expires: Int64?, window: Int64?) throws {
    if let window, window <= 0 { throw ExpiringFormatError("the window of a deadline is not more than zero") }
    guard let expires else {
      guard window == nil else { throw ExpiringFormatError("there is the window of a deadline, and no deadline") }
      return nil
    }
    self.init(WallTime(microseconds: expires), windowMicroseconds: window)
  }
}
