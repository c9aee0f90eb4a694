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
