/* Sessions whose EPs are of different libraries: the waits, which the host does, are what orders the work. */
#include "order.h"

#define THREE "Mul x w2 a; Sigmoid a b; Add b w3 c; Sigmoid c d; Mul d x y"
#define TWO   "Mul x w2 a; Add a w3 b; Mul b a y"

static void test_device_cpu_device(void) {
  open_env();
  Device device = plug("virtual");
  OrtSession* session = session_on(&device, THREE);
  device.control->max_delay_us = 30;
  check_many_runs(session, THREE);
  check_every_wait_is_needed(&device, session, THREE, 2);
  api()->ReleaseSession(session);
  unplug(&device);
  close_env();
}

static void test_two_devices(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtSession* session = open_session(TWO, (Use[]){{&one, "ops=Mul"}, {&two, "ops=Add"}}, 2);
  one.control->max_delay_us = two.control->max_delay_us = 30;
  check_many_runs(session, TWO);
  two.control->max_delay_us = 0;
  check_every_wait_is_needed(&one, session, TWO, 1);
  check_every_wait_is_needed(&two, session, TWO, 1);
  api()->ReleaseSession(session);
  unplug(&one);
  unplug(&two);
  close_env();
}

int main(void) {
  RUN(test_device_cpu_device);
  RUN(test_two_devices);
  return finish();
}
