import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct LineSplitterTests {
  /// Splits a text that arrives in pieces of a size, and returns its lines, with `nil` for lines that are too long.
  private func lines(_ text: String, piece: Int = .max, maximumLength: Int = 100) -> [String?] {
    var splitter = LineSplitter(maximumLength: maximumLength)
    var lines: [String?] = []
    var numbers: [Int] = []
    func take(_ line: LineSplitter.Line) {
      numbers.append(line.number)
      switch line {
      case .text(let bytes, _): lines.append(String(decoding: bytes, as: UTF8.self))
      case .tooLong: lines.append(nil)
      }
    }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      splitter.append(rest.prefix(piece))
      rest = rest.dropFirst(piece)
      while let line = splitter.next() { take(line) }
    }
    splitter.finish()
    while let line = splitter.next() { take(line) }
    #expect(numbers == Array(1...max(1, numbers.count)).prefix(numbers.count).map(\.self))
    return lines
  }

  @Test(arguments: [1, 2, 3, 5, 1000])
  func `lines are complete for any pieces`(piece: Int) {
    #expect(lines("a\nbc\r\n\n\r\ndéf\rg", piece: piece) == ["a", "bc", "", "", "déf\rg"])
    #expect(lines("a\nb\n", piece: piece) == ["a", "b"])
    #expect(lines("\n", piece: piece) == [""])
    #expect(lines("a\r", piece: piece) == ["a"])
    #expect(lines("", piece: piece) == [])
  }

  @Test(arguments: [1, 2, 3, 4, 5, 7, 1000])
  func `a line that is too long is reported once and the next is read`(piece: Int) {
    #expect(lines("12345\n123456\nab\r\n", piece: piece, maximumLength: 5) == ["12345", nil, "ab"])
    #expect(lines("12345\r\n123456\r\n1", piece: piece, maximumLength: 5) == ["12345", nil, "1"])
    #expect(lines("1234567890123456", piece: piece, maximumLength: 5) == [nil])
    #expect(lines("1234567890123456\n\n1234567890", piece: piece, maximumLength: 5) == [nil, "", nil])
  }

  @Test func `a line that is too long is reported before its end arrives`() {
    var splitter = LineSplitter(maximumLength: 5)
    splitter.append(Array("1234567".utf8))
    #expect(splitter.next() == .tooLong(number: 1))
    #expect(splitter.next() == nil)
  }

  /// `import` accepts lines as long as `set` stores and `export` prints them.
  @Test func `a line can have 70 megabytes`() {
    var splitter = LineSplitter()
    let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1_000_000)
    for _ in 0..<70 {
      splitter.append(piece)
      #expect(splitter.next() == nil)
    }
    splitter.append([UInt8(ascii: "\n")])
    guard case .text(let line, number: 1) = splitter.next() else {
      Issue.record("no line was returned")
      return
    }
    #expect(line.count == 70_000_000)
  }
}
