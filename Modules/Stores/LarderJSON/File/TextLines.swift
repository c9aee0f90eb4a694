/// The lines of a text, for saying where in it something stands.
struct TextLines {
  /// Where each line begins, the first one left out.
  private let starts: [Int]

  /// Looks at a text once.
  init(_ text: [UInt8]) {
    starts = text.indices.filter { text[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
  }

  /// The line and the column of a byte, both counted from 1.
  func place(ofOffset offset: Int) -> (line: Int, column: Int) {
    var low = 0
    var high = starts.count
    while low < high {
      let middle = low + (high - low) / 2
      if starts[middle] <= offset { low = middle + 1 } else { high = middle }
    }
    return (low + 1, offset - (low == 0 ? 0 : starts[low - 1]) + 1)
  }
}
