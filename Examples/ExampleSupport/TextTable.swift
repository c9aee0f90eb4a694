/// Rows of text in aligned columns.
package struct TextTable: CustomStringConvertible {
  package enum Alignment {
    case left
    case right
  }

  private let alignments: [Alignment]
  private var rows: [[String]] = []

  /// Creates a table without rows.
  ///
  /// - Parameter alignments: The alignment of each column.
  package init(alignments: [Alignment]) {
    self.alignments = alignments
  }

  /// Adds a row.
  ///
  /// Cells beyond the last column are omitted.
  package mutating func append(_ row: [String]) {
    rows.append(row)
  }

  /// The rows, each on an indented line.
  package var description: String {
    let widths = alignments.indices.map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = zip(row, zip(alignments, widths)).map { cell, layout in
        let space = String(repeating: " ", count: layout.1 - cell.count)
        return layout.0 == .left ? cell + space : space + cell
      }
      let line = "  " + cells.joined(separator: "  ")
      return String(line.reversed().drop { $0 == " " }.reversed())
    }.joined(separator: "\n")
  }
}
