import Foundation
import Testing

/// Runs a closure as a user to whom the permissions of files apply, which they do not for root.
///
/// Use it in exit tests only, because it concerns the whole process. A process of another user than root just runs the closure.
/// Afterward, the process is root's again, so that it can write its counts of coverage.
package func withoutRootPrivileges<Result>(_ body: () async throws -> Result) async throws -> Result {
  guard geteuid() == 0 else { return try await body() }
  try #require(setegid(65534) == 0 && seteuid(65534) == 0)
  let result: Swift.Result<Result, any Error>
  do {
    result = .success(try await body())
  } catch {
    result = .failure(error)
  }
  try #require(seteuid(0) == 0 && setegid(0) == 0)
  return try result.get()
}
