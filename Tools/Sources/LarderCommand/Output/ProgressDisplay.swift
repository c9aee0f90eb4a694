/// Shows the progress of an import on a terminal, in one line that is drawn again and again.
struct ProgressDisplay {
  /// The time from one drawing to the next.
  static let interval = Duration.milliseconds(100)

  private let totalBytes: Int?
  private let width: () -> Int
  private let elapsed: () -> Duration
  private let write: (String) -> Void
  private var lastDrawn: Duration?
  private var isVisible = false

  /// Makes a display.
  ///
  /// - Parameters:
  ///   - totalBytes: How many bytes there are to read; `nil` where that is not known.
  ///   - width: How many characters fit on a line now.
  ///   - elapsed: How long the import has taken so far.
  ///   - write: Writes to the terminal.
  init(
    totalBytes: Int?,
    width: @escaping () -> Int,
    elapsed: @escaping () -> Duration,
    write: @escaping (String) -> Void
  ) {
    self.totalBytes = totalBytes
    self.width = width
    self.elapsed = elapsed
    self.write = write
  }

  /// Draws the line where it is time to.
  ///
  /// - Parameters:
  ///   - bytesRead: How many bytes were read.
  ///   - entries: How many entries were taken.
  mutating func update(bytesRead: Int, entries: Int) {
    let now = elapsed()
    // The first drawing waits, too: what is done at once needs no bar.
    guard now - (lastDrawn ?? .zero) >= ProgressDisplay.interval else { return }
    lastDrawn = now
    let bar = ProgressBar(bytesRead: bytesRead, totalBytes: totalBytes, entries: entries, elapsed: now)
    // The last column stays free: some terminals begin a new line once it is written.
    write("\r\(bar.line(width: width() - 1))\u{1B}[K")
    isVisible = true
  }

  /// Takes the line away, so that something else can be written.
  mutating func clear() {
    guard isVisible else { return }
    write("\r\u{1B}[K")
    isVisible = false
  }
}
