#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Cuts a stream of bytes into lines.
///
/// Lines end with LF or CR LF; the last may end with the stream. It holds no more than a line and what was read with it,
/// and no line longer than its limit.
struct LineSplitter {
  /// A line of the stream.
  enum Line: Equatable {
    /// A line, without its end.
    case text(ArraySlice<UInt8>, number: Int)
    /// A line that is longer than the limit; its content was dropped.
    case tooLong(number: Int)

    /// The number of the line; the first line is 1.
    var number: Int {
      switch self {
      case .text(_, let number), .tooLong(let number): number
      }
    }
  }

  /// The most bytes that a line may have unless said otherwise: 1 GiB.
  static let defaultMaximumLength = 1 << 30

  private let maximumLength: Int
  private var buffer: [UInt8] = []
  /// Where the next line begins in `buffer`.
  private var start = 0
  /// How far `buffer` is known to hold no end of that line.
  private var searched = 0
  private var lineNumber = 0
  private var isDroppingLine = false
  private var isFinished = false

  /// Makes a splitter.
  ///
  /// - Parameter maximumLength: The most bytes that a line may have, its end not counted.
  init(maximumLength: Int = LineSplitter.defaultMaximumLength) {
    self.maximumLength = maximumLength
  }

  /// Takes more of the stream.
  ///
  /// - Parameter bytes: What comes next. Take all lines that it completes before more is given.
  mutating func append(_ bytes: some Collection<UInt8>) {
    buffer.removeSubrange(..<start)
    searched -= start
    start = 0
    buffer.append(contentsOf: bytes)
  }

  /// Takes the end of the stream, which also ends the last line.
  mutating func finish() {
    isFinished = true
  }

  /// The next line, or `nil` where there is none before more is given.
  mutating func next() -> Line? {
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
      // One more byte than the limit may be the CR of the line's end.
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
