import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct ProgressBarTests {
  private func line(
    _ done: Int, of total: Int?, entries: Int, after elapsed: Duration, width: Int = 79
  ) -> String {
    ProgressBar(done: done, total: total, entries: entries, elapsed: elapsed).line(width: width)
  }

  @Test func `it shows percentage rate and time left`() {
    #expect(
      line(250, of: 1000, entries: 5000, after: .seconds(2))
        == "[#########------------------------------]  25%  5000 entries  2500/s  0:06 left")
    #expect(line(1, of: 7200, entries: 1, after: .seconds(1)).hasSuffix("1:59:59 left"))
    #expect(line(0, of: 1000, entries: 0, after: .zero).hasSuffix("]   0%  0 entries  0/s"))
    #expect(line(1000, of: 1000, entries: 9, after: .seconds(1)).hasSuffix("#] 100%  9 entries  9/s  0:00 left"))
  }

  @Test func `without a total it shows no bar`() {
    #expect(line(250, of: nil, entries: 5000, after: .seconds(62)) == "5000 entries  81/s  1:02")
  }

  @Test func `a file that grew or is empty is at one hundred percent`() {
    #expect(line(2000, of: 1000, entries: 9, after: .seconds(1)).contains("100%"))
    #expect(line(0, of: 0, entries: 0, after: .seconds(1)).contains("100%"))
  }

  @Test(arguments: [0, 1, 10, 40, 50, 60, 79, 200])
  func `it never exceeds the width`(width: Int) {
    for total in [nil, 1000] {
      #expect(line(999, of: total, entries: 1_000_000_000_000, after: .seconds(1), width: width).count <= width)
    }
  }

  @Test func `it is drawn at most ten times a second`() {
    final class Terminal {
      var now = Duration.zero
      var drawings: [String] = []
    }
    let terminal = Terminal()
    var display = ProgressDisplay(
      total: nil, width: { 80 }, elapsed: { terminal.now }, write: { terminal.drawings.append($0) })
    display.update(done: 1, entries: 1)
    display.clear()
    #expect(terminal.drawings.isEmpty)
    terminal.now = .milliseconds(100)
    display.update(done: 2, entries: 2)
    terminal.now = .milliseconds(199)
    display.update(done: 3, entries: 3)
    #expect(terminal.drawings == ["\r2 entries  20/s  0:00\u{1B}[K"])
    terminal.now = .milliseconds(200)
    display.update(done: 4, entries: 4)
    display.clear()
    display.clear()
    #expect(terminal.drawings == ["\r2 entries  20/s  0:00\u{1B}[K", "\r4 entries  20/s  0:00\u{1B}[K", "\r\u{1B}[K"])
  }

  @Test func `the summary counts skipped lines`() {
    var lines: [String] = []
    var progress = ImportProgress(display: nil) { lines.append($0) }
    #expect(progress.summary(entries: 1, elapsed: .milliseconds(1990)) == "imported 1 entry in 1.9 s (1/s)")
    for line in 1...12 { progress.skip(BadLine("no"), line: line) }
    #expect(lines.count == 11)
    #expect(lines.first == "larder: skipped line 1: no")
    #expect(
      progress.summary(entries: 30, elapsed: .zero) == "imported 30 entries in 0.0 s (0/s), skipped 12 bad lines")
  }
}
