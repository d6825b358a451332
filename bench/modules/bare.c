/* A module without any vector instruction: its gate has nothing to clear there. */
void nothing(void)
{
}
