import Foundation
import Larder

/// The hook of Swift's runtime through which a ``ScheduledTrial`` receives the jobs of its work.
///
/// The runtime library has a variable for a function that it calls in place of its own when a job is given to the pool
/// of the process, with the original as an argument. It is declared in `swift/Runtime/Concurrency.h` of the Swift
/// project, and is no part of Swift's API. Jobs that other threads enqueue go to the original, so trials run beside
/// other tests.
///
/// There are hooks for sleeping jobs and for the main actor, too. Swift 6.3.1 on Linux did not call them in a program that slept
/// by each of its clocks and ran on the main actor: both go to Dispatch directly.
enum RuntimeHooks {
  private typealias Original = @convention(thin) (UnownedJob) -> Void
  private typealias Enqueue = @convention(thin) (UnownedJob, Original) -> Void

  /// A Boolean value that indicates whether the runtime has the hook.
  ///
  /// The value is set on the first use.
  static let areSet: Bool = {
    guard let variable = dlsym(nil, "swift_task_enqueueGlobal_hook") else { return false }
    variable.assumingMemoryBound(to: Enqueue?.self).pointee = { job, original in
      guard let run = ScheduledRun.current else { return original(job) }
      run.enqueue(job)
    }
    return true
  }()
}
