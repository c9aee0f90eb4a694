import ExampleSupport
import Foundation

/// A progress bar on the terminal.
///
/// It is not shown if standard error is not a terminal.
struct ProgressBar {
  private static let width = 30

  private let label: String
  private let total: Int
  private let isShown: Bool
  private let start = ContinuousClock.now
  private var lastDrawing: ContinuousClock.Instant?

  /// Creates a bar.
  ///
  /// - Parameters:
  ///   - label: The name of the work.
  ///   - total: The expected number of steps, which need not be exact.
  init(label: String, total: Int) {
    self.label = label
    self.total = max(total, 1)
    isShown = isatty(FileHandle.standardError.fileDescriptor) == 1
  }

  /// Draws the bar, at most ten times a second.
  ///
  /// - Parameter count: The number of completed steps.
  mutating func show(_ count: Int) {
    // The clock costs more than the steps.
    guard isShown, count.isMultiple(of: 64) else { return }
    let now = ContinuousClock.now
    if let lastDrawing, lastDrawing.duration(to: now) < .milliseconds(100) { return }
    lastDrawing = now

    let fraction = min(Double(count) / Double(total), 1)
    let rate = Double(count) / max(start.duration(to: now) / .seconds(1), 1e-6)
    let filled = Int(fraction * Double(Self.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
    let remaining = Double(max(total - count, 0)) / max(rate, 1e-6)
    write(
      "\r\(label) [\(bar)] \(Int(fraction * 100)) %  \(TextFormat.count(Int(rate)))/s  "
        + "\(TextFormat.duration(.seconds(remaining))) left\u{1B}[K")
  }

  /// Clears the line.
  func clear() {
    if lastDrawing != nil { write("\r\u{1B}[K") }
  }

  private func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}
