import StoreAccess

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The messages of an import while it runs and at its end.
struct ImportProgress {
  /// The number of bad lines that are reported individually before further ones are only counted.
  static let maximumReportedLines = 10

  private var display: ProgressDisplay?
  private let write: (String) -> Void
  private var badLineCount = 0

  /// Creates the progress of an import that has not begun.
  ///
  /// - Parameters:
  ///   - display: The display on the terminal; `nil` if there is no terminal.
  ///   - write: Writes a line to standard error.
  init(display: ProgressDisplay?, write: @escaping (String) -> Void) {
    self.display = display
    self.write = write
  }

  /// Updates the display.
  mutating func update(bytesRead: Int, entries: Int) {
    display?.update(done: bytesRead, entries: entries)
  }

  /// Clears the display, so other output can be written.
  mutating func clear() {
    display?.clear()
  }

  /// Counts a bad line, and reports it unless there were many before it.
  mutating func skip(_ bad: BadLine, line: Int) {
    badLineCount += 1
    guard badLineCount <= ImportProgress.maximumReportedLines else { return }
    clear()
    write("larder: skipped line \(line): \(bad.reason)")
    if badLineCount == ImportProgress.maximumReportedLines { write("larder: further bad lines are only counted") }
  }

  /// Returns a summary in one line.
  ///
  /// - Parameters:
  ///   - entries: The number of imported entries.
  ///   - elapsed: The duration of the import.
  func summary(entries: Int, elapsed: Duration) -> String {
    let rate = elapsed > .zero ? Int((Double(entries) / (elapsed / .seconds(1))).rounded()) : 0
    var summary = "imported \(EntryCount.text(entries)) in \(elapsed.inSeconds) (\(rate)/s)"
    if badLineCount > 0 { summary += ", skipped \(badLineCount) bad \(badLineCount == 1 ? "line" : "lines")" }
    return summary
  }
}

/// Reports the progress of a verb when the user interrupts it with Ctrl-C.
///
/// The tool then exits immediately, which harms no store.
struct Interruption {
  private let handler: SignalHandler

  /// Handles the signal for the lifetime of this value.
  ///
  /// - Parameter report: Returns the sentence to print.
  init(_ report: @escaping @Sendable () -> String) {
    handler = SignalHandler([SIGINT]) { number in
      // Overwrites the progress bar, if there is one.
      if Descriptor.standardError.isTerminal { Diagnostics.write("\r\u{1B}[K") }
      Diagnostics.writeLine("larder: interrupted. \(report())")
      _exit(SignalHandler.exitCode(of: number))
    }
  }
}
