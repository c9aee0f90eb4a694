#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif
import Foundation

/// The peak resident memory of this process.
public enum PeakMemory {
  /// Returns the peak, in bytes.
  ///
  /// - Throws: The error of the file system.
  public static func bytes() throws -> Int {
    #if canImport(Darwin)
    var usage = rusage()
    guard getrusage(RUSAGE_SELF, &usage) == 0 else { throw CocoaError(.featureUnsupported) }
    return usage.ru_maxrss
    #else
    // Not getrusage: on Linux a process inherits the figure of its parent.
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    guard let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
      throw CocoaError(.featureUnsupported)
    }
    return kibibytes * 1024
    #endif
  }
}
