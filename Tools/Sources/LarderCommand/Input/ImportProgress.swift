/// What an import tells a person while it runs and at its end.
struct ImportProgress {
  /// How many bad lines are told one by one; the others are only counted.
  static let mostBadLinesTold = 10

  private var display: ProgressDisplay?
  private let write: (String) -> Void
  private var badLineCount = 0

  /// Makes a progress that has not begun.
  ///
  /// - Parameters:
  ///   - display: Shows it on a terminal; `nil` where there is none.
  ///   - write: Writes a line for people to read.
  init(display: ProgressDisplay?, write: @escaping (String) -> Void) {
    self.display = display
    self.write = write
  }

  /// Shows how far the import has come.
  mutating func update(bytesRead: Int, entries: Int) {
    display?.update(done: bytesRead, entries: entries)
  }

  /// Makes way for other output.
  mutating func clear() {
    display?.clear()
  }

  /// Counts a bad line, and tells of it where there are not many yet.
  mutating func skip(_ bad: BadLine, line: Int) {
    badLineCount += 1
    guard badLineCount <= ImportProgress.mostBadLinesTold else { return }
    clear()
    write("larder: line \(line) is left out: \(bad.reason)")
    if badLineCount == ImportProgress.mostBadLinesTold { write("larder: further bad lines are only counted") }
  }

  /// What was done, in one line.
  ///
  /// - Parameters:
  ///   - entries: How many entries were imported.
  ///   - elapsed: How long it took.
  func summary(entries: Int, elapsed: Duration) -> String {
    let rate = elapsed > .zero ? Int((Double(entries) / (elapsed / .seconds(1))).rounded()) : 0
    var summary = "imported \(EntryCount.text(entries)) in \(elapsed.inSeconds) (\(rate)/s)"
    if badLineCount > 0 { summary += ", left out \(badLineCount) bad \(badLineCount == 1 ? "line" : "lines")" }
    return summary
  }
}
