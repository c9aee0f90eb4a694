import ExampleSupport
import Foundation
import Larder

extension TextFormat {
  /// Returns a path as text that a terminal can show, whatever its bytes.
  static func path(_ path: StoreKey) -> String {
    guard let text = path.string, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { return path.description }
    return text
  }

  /// Returns a time with a precision of one second: 2026-04-14 09:30:00Z.
  static func time(_ time: FileTime) -> String {
    Date(timeIntervalSince1970: Double(time.seconds)).formatted(Date.ISO8601FormatStyle(dateTimeSeparator: .space))
  }
}
