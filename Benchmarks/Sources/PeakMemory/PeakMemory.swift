#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif
import Foundation

/// The most memory that this process ever had resident.
public enum PeakMemory {
  /// The bytes.
  ///
  /// - Throws: What the file system throws.
  public static func bytes() throws -> Int {
    #if canImport(Darwin)
    var usage = rusage()
    guard getrusage(RUSAGE_SELF, &usage) == 0 else { throw CocoaError(.featureUnsupported) }
    return usage.ru_maxrss
    #else
    // Not getrusage: on Linux a process takes over the figure of the one that has started it.
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    guard let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
      throw CocoaError(.featureUnsupported)
    }
    return kibibytes * 1024
    #endif
  }
}
