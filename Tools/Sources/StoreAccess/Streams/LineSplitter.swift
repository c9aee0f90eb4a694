#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Splits a stream of bytes into lines.
///
/// Lines end with LF or CR LF. The last line can end with the stream. The splitter holds at most one line and the bytes
/// that were appended with it, and drops the content of longer lines than its limit.
package struct LineSplitter {
  /// A line of the stream.
  package enum Line: Equatable {
    /// A line, without its end.
    case text(ArraySlice<UInt8>, number: Int)
    /// A line that is longer than the limit, without its content.
    case tooLong(number: Int)

    /// The number of the line, counted from 1.
    package var number: Int {
      switch self {
      case .text(_, let number), .tooLong(let number): number
      }
    }
  }

  /// The default limit for the length of a line, in bytes: 1 GiB.
  package static let defaultMaximumLength = 1 << 30

  private let maximumLength: Int
  private var buffer: [UInt8] = []
  /// The index in `buffer` at which the next line begins.
  private var start = 0
  /// The index in `buffer` up to which that line is known not to end.
  private var searched = 0
  private var lineNumber = 0
  private var isDroppingLine = false
  private var isFinished = false

  /// Creates a splitter.
  ///
  /// - Parameter maximumLength: The maximum length of a line in bytes, without its end. Defaults to 1 GiB.
  package init(maximumLength: Int = LineSplitter.defaultMaximumLength) {
    self.maximumLength = maximumLength
  }

  /// Appends bytes of the stream.
  ///
  /// - Parameter bytes: The next bytes. Before you append more, take all lines that they complete.
  package mutating func append(_ bytes: some Collection<UInt8>) {
    buffer.removeSubrange(..<start)
    searched -= start
    start = 0
    buffer.append(contentsOf: bytes)
  }

  /// Ends the stream, and with it the last line.
  package mutating func finish() {
    isFinished = true
  }

  /// Returns the next line, or `nil` if no further line is complete.
  package mutating func next() -> Line? {
    while true {
      if let end = indexOfLineEnd() {
        let line = buffer[start..<end]
        start = end + 1
        searched = start
        if isDroppingLine {
          isDroppingLine = false
          continue
        }
        return take(line)
      }
      searched = buffer.count
      if isDroppingLine {
        start = buffer.count
        return nil
      }
      // The byte after the limit can be the CR of the line's end.
      guard buffer.count - start <= maximumLength + 1 else {
        start = buffer.count
        isDroppingLine = true
        lineNumber += 1
        return .tooLong(number: lineNumber)
      }
      guard isFinished, start < buffer.count else { return nil }
      let line = buffer[start...]
      start = buffer.count
      return take(line)
    }
  }

  private mutating func take(_ line: ArraySlice<UInt8>) -> Line {
    lineNumber += 1
    let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    return line.count > maximumLength ? .tooLong(number: lineNumber) : .text(line, number: lineNumber)
  }

  private func indexOfLineEnd() -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, searched < bytes.count,
        let end = memchr(base + searched, Int32(UInt8(ascii: "\n")), bytes.count - searched)
      else { return nil }
      return UnsafeRawPointer(end) - base
    }
  }
}
